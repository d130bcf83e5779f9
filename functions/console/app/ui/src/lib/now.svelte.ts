// One clock for all times that pages show as "how long ago".
class Now {
  at = $state(new Date());
  constructor() {
    setInterval(() => (this.at = new Date()), 1000);
  }
}
export const now = new Now();
