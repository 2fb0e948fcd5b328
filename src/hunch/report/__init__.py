"""Tables, pictures and pages from finished runs."""
