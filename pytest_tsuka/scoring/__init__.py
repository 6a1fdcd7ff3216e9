"""A conversation makes a verdict, verdicts make scores and a tier. Pure."""
