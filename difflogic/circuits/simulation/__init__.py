"""A hard circuit at work on one large grid: engines, start states, and the files of what became of them."""
