"""What a model says of itself, in model.json and in the manifest of a zoo."""

from maskwalk.reading.shapes import file_name, maybe, number, table, text, whole

PACKED = table({"file": file_name, "sha256": text(64, 64)}, needs=("file", "sha256"))
ABOUT = {  # what a model says of itself, as far as anybody reads it
    **{name: text(least=1) for name in ("graph", "walk", "world", "device")},
    "commit": maybe(text()),  # none where the package runs from no checkout
    **{name: whole(0) for name in ("graph_seed", "walk_seed", "parameters")},
    **{name: maybe(number()) for name in ("bound", "floor", "bound_se", "floor_se")},
    "length": whole(1),
    "text": table({"length": whole(1), "kind": text()}),
    **{
        name: table({"value": number(), "se": maybe(number(0))}, needs=("value",))
        for name in ("test_bpb", "test_ppl")
    },
}
MODELS = table(
    {
        "models": table(
            {},
            others=table(
                ABOUT
                | {
                    "file": file_name,
                    "sha256": text(64, 64),
                    "config": table({}),
                    "tokenizer": PACKED,
                    "held_out": PACKED,
                },
                needs=("file", "sha256", "config"),
                what="a table with file, sha256 and config",
            ),
            what="a table of models by their names",
        )
    },
    needs=("models",),
)
