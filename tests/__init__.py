"""The checker behind the jaxtyping annotations at test time; an int is a float (PEP 484)."""

try:
    from beartype import BeartypeConf, beartype
except ImportError:  # the GPU tests also run where nothing can be installed
    pass
else:
    checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
