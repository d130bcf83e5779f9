package migrate

// Open is open, for tests that go back to a former schema.
var Open = open
