"""What keeps a shared file from being read."""


class FileUnreadableError(Exception):
    """The file can't be had; the text says why, and what a person can do."""
