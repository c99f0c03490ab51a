"""Where the defaults come from: the environment, then a YAML file, then arguments, the later ones winning."""
