"""Dynamic regressor extension and mixing."""
