"""What the product costs beside what a user would pick instead: ``make bench``."""
