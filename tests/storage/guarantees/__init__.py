"""Each guarantee of the statements on PostgreSQL: a scenario that shows it, and the part of a statement that gives it."""
