"""Render pass instances of both kinds, and their accesses of attachments."""
