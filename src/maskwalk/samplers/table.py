"""The registry the sampler files add themselves to."""

from maskwalk.canvas import Sampler
from maskwalk.specs import Registry

SAMPLERS: Registry[Sampler] = Registry("sampler")
