"""The page at `/docs`: a template and its style."""
