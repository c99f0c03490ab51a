"""The process the manager lives in, and how clients reach it."""
