"""How the name of a denoiser becomes one: `oracle`, or a spec registered from outside."""

from maskwalk.denoisers.protocol import Denoiser
from maskwalk.oracles import oracle_for
from maskwalk.specs import Registry
from maskwalk.walks import WalkLaw

DENOISERS: Registry[Denoiser] = Registry("denoiser", context=("law", "device"))


@DENOISERS.register("oracle")
def oracle(law: WalkLaw) -> Denoiser:
    """Exact conditionals of the walk law: a perfect denoiser, no training."""
    return oracle_for(law)


def build_denoiser(name: str, law: WalkLaw, device: str = "cpu") -> Denoiser:
    """The denoiser a name stands for, for walks of `law`."""
    return DENOISERS.build(name, law=law, device=device)


def denoiser_notes(denoiser: Denoiser) -> tuple[str, ...]:
    """What a reader of the record should know about the denoiser's answers."""
    return tuple(getattr(denoiser, "notes", ()))
