"""The checker behind the jaxtyping annotations at test time; an int is a float (PEP 484)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
