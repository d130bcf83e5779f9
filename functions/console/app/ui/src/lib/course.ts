// Series over time, as a chart and the table below it need them.
import type { Course } from "./api";

/** Line is one series by its name, with what people ask of it first. */
export interface Line {
  name: string;
  now: number | null;
  least: number | null;
  most: number | null;
}

/** named is a line for each course. */
export function named(courses: Course[], name: (labels: Record<string, string>) => string): Line[] {
  return courses.map((c) => {
    const values = c.points.map((p) => p[1]).filter((v): v is number => typeof v === "number");
    return { name: name(c.labels), now: values.at(-1) ?? null, least: values.length ? Math.min(...values) : null, most: values.length ? Math.max(...values) : null };
  });
}

/** aligned gives all courses the same instants: first these in seconds, then the values of each course, null where it has none. */
export function aligned(courses: Course[]): [number[], ...(number | null)[][]] {
  const instants = [...new Set(courses.flatMap((c) => c.points.map((p) => p[0] ?? 0)))].sort((a, b) => a - b);
  const at = new Map(instants.map((x, i) => [x, i]));
  return [instants, ...courses.map((c) => {
    const values: (number | null)[] = instants.map(() => null);
    for (const [x, y] of c.points) values[at.get(x ?? 0)!] = y ?? null;
    return values;
  })];
}
