"""The package inside Jupyter and IPython: magics, and what they show."""
