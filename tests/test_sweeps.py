"""A sampler's whole curve as one entry of an experiment; where each sampler comes from."""

import re
from pathlib import Path

import pytest

from maskwalk.bench.experiment import Experiment
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.table import expand, source

ONE_SETTING = {"left_to_right", "first_hitting"}  # no knob trades calls for quality


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_every_sampler_has_a_curve_and_a_source(name: str) -> None:
    curve = expand(f"sweep({name})")
    assert len(curve) == len(SAMPLERS[name].sweep)  # no setting twice
    assert len(curve) >= 3 or name in ONE_SETTING
    for spec in curve:
        SAMPLERS.build(spec)
    said = source(name)
    assert 5 < len(said) < 72, said
    assert re.search(r"arXiv \d{4}\.\d{5}\]|the paper|this project|autoregressive", said), said


def test_expand() -> None:
    assert expand("entropy(block=2)") == ["entropy(block=2)"]
    blocks = ["entropy(block=1)", "entropy(block=2)", "entropy(block=4)"]
    assert expand("sweep(entropy)")[:3] == blocks
    fixed = expand("sweep(guided_bisection(score='margin'))")
    assert len(fixed) == 4 and all("score='margin'" in spec for spec in fixed)
    both = expand("sweep(left_to_right, halton, left_to_right)")
    assert both[0] == "left_to_right()" and len(both) == 1 + len(SAMPLERS["halton"].sweep)
    everything = expand("sweep(all)")
    assert len(everything) == len(set(everything)) == sum(len(SAMPLERS[n].sweep) for n in SAMPLERS)
    assert "blocks(size=2, inner=confidence(block=1))" in everything
    for wrong in ("sweep", "sweep()", "sweep('entropy')", "sweep(name=entropy)", "sweep(entropi)"):
        with pytest.raises(MaskwalkError):
            expand(wrong)
    with pytest.raises(MaskwalkError, match="key=value"):
        expand("sweep(entropy(2))")


def test_a_sweep_in_an_experiment(tmp_path: Path) -> None:
    file = tmp_path / "curves.toml"
    file.write_text(
        'length = 6\ncount = 2\nsamplers = ["sweep(threshold)", "bisection"]\n'
        '[[graphs]]\ngraph = "st_er(nodes=8, p=0.1)"\nwalk = "lazy()"\n'
    )
    specs = [cell.sampler for cell in Experiment.load(file).cells]
    taus = [f"threshold(tau={setting['tau']})" for setting in SAMPLERS["threshold"].sweep]
    assert specs == [*taus, "bisection(order=1)"]
    file.write_text(file.read_text().replace("sweep(threshold)", "sweep(treshold)"))
    with pytest.raises(MaskwalkError, match="threshold"):
        Experiment.load(file)
