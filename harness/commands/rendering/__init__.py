"""Render pass instances of both kinds, and what they do to attachments."""
