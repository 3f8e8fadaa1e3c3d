"""Programs with synchronization errors that public projects had, and the table of what is said of them."""
