import sys, time, traceback, os
import torch
from maskwalk.denoisers.ddit import *
from maskwalk.denoisers.weights import *
from maskwalk.denoisers.network import NetworkDenoiser
from maskwalk.denoisers import attention
from maskwalk.training.settings import *
from maskwalk.training.step import *

OUT = os.environ.get("OUT", "/tmp")
T0 = time.time()


def say(*a):
    print(f"[{time.time() - T0:6.1f}]", *a, flush=True)


def timed(f, n=20, warm=3):
    for _ in range(warm):
        f()
    torch.cuda.synchronize()
    a = torch.cuda.Event(enable_timing=True)
    b = torch.cuda.Event(enable_timing=True)
    a.record()
    for _ in range(n):
        f()
    b.record()
    torch.cuda.synchronize()
    return a.elapsed_time(b) / n


def graphed(f):
    f()
    f()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        f()
    return g.replay


def section(fn):
    try:
        say("==", fn.__name__)
        fn()
    except Exception:
        traceback.print_exc()


def peak():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn_like(a)
    ms = timed(lambda: a @ b, 10)
    say("peak TFLOPs", 2 * 8192**3 / ms / 1e9)


def attn():
    import maskwalk.denoisers.short_attention as S

    H, W, L = 4, 64, 24
    ang = attention.rotation(L, W // 2).cuda()
    for dt in (torch.float16, torch.bfloat16):
        q = torch.randn(64, L, 3 * H * W, device="cuda", dtype=dt)
        x = q.double().requires_grad_()
        qq, k, v = x.view(64, L, 3, H, W).unbind(2)
        cos, sin = ang.double()[:, :, None, :]

        def rot(z):
            a, b = z.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        s = torch.einsum("rihw,rjhw->rhij", rot(qq), rot(k)) / W**0.5
        o = torch.einsum("rhij,rjhw->rihw", s.softmax(-1), v).reshape(64, L, H * W)
        g = torch.randn_like(o)
        (dx,) = torch.autograd.grad(o, x, g)
        y = q.clone().requires_grad_()
        o2 = S.short_attention(y, ang, H)
        (dy,) = torch.autograd.grad(o2, y, g.to(dt))
        rel = lambda a, b: float((a.detach().double() - b.detach()).norm() / b.detach().norm())
        say(dt, "fwd", rel(o2, o), "bwd", rel(dy, dx))
    for rows in (1792,):
        q = torch.randn(rows, L, 3 * H * W, device="cuda", dtype=torch.bfloat16)
        g = torch.randn(rows, L, H * W, device="cuda", dtype=torch.bfloat16)
        for w in (1, 2, 4):
            S.FORWARD_WARPS = S.BACKWARD_WARPS = w
            say(
                rows,
                "warps",
                w,
                "fwd ms",
                timed(graphed(lambda: S.short_attention(q, ang, H))),
                "bwd",
                timed(graphed(lambda: S.short_attention_gradient(q, ang, g, H))),
            )
        S.FORWARD_WARPS = S.BACKWARD_WARPS = 1
        y = q.clone().requires_grad_()

        def sd():
            qq, k, v = y.view(rows, L, 3, H, W).unbind(2)
            o = torch.nn.functional.scaled_dot_product_attention(
                qq.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            )
            return torch.autograd.grad(o, y, g.view(rows, L, H, W).transpose(1, 2))

        say("sdpa fwd+bwd without rotary", timed(sd))


def jobs(n):
    gen = torch.Generator().manual_seed(0)
    return [Job(f"m{i}", torch.randint(0, 500, (100_000, 24), generator=gen), i) for i in range(n)]


def profile(f, n=5, top=45):
    from torch.profiler import profile, ProfilerActivity

    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(n):
            f()
        torch.cuda.synchronize()
    rows = sorted(
        ((e.self_device_time_total / n, e.count / n, e.key) for e in p.key_averages()), reverse=True
    )
    say("sum of kernels us", sum(r[0] for r in rows), "kernels", sum(r[1] for r in rows))
    for r in rows[:top]:
        print(f"{r[0]:9.1f} us x{r[1]:5.1f}  {r[2][:110]}")


def batched(n=7):
    c = DDiTConfig()
    t = time.time()
    st = Stepper(c, jobs(n), Settings(), device="cuda")
    say(n, "models: built, compiled, captured in", time.time() - t)
    t = time.time()
    l = st.advance(300).cpu()
    dt = time.time() - t
    t = time.time()
    l = st.advance(300).cpu()
    dt = time.time() - t
    say(
        n,
        "models ms/step",
        dt / 300 * 1e3,
        "per model",
        dt / 300 / n * 1e3,
        "loss",
        l[:3, 0].tolist(),
        l[-50:].mean(0).tolist(),
    )
    profile(st._graph.replay, top=40)


def single():
    batched(1)


def grads():
    c = DDiTConfig(blocks=2)
    out = {}
    j = jobs(2)
    for dev in ("cpu", "cuda"):
        st = Stepper(
            c,
            [Job(x.name, x.walks[:2000], x.seed, 0.1) for x in j],
            Settings(batch=64),
            device=dev,
            compiled=False,
            graph=False,
        )
        g = torch.Generator().manual_seed(1)
        for p in st.parts:
            p.weights.add_(0.03 * torch.randn(p.weights.shape, generator=g).to(dev))
        if st.copy is not None:
            st.copy.copy_(st.parts[0].weights)
        leaves = [
            t.detach().requires_grad_()
            for t in (st.parts[0].weights if st.copy is None else st.copy, st.parts[1].weights)
        ]
        l = st.objective(*leaves)
        gr = torch.autograd.grad(l.sum(), leaves)
        out[dev] = [t.detach().double().cpu() for t in (l, *gr)]
        if dev == "cpu":
            names = st.layout
    say([(float((a - b).norm() / b.norm())) for a, b in zip(out["cuda"], out["cpu"])])
    A, B = names.grouped(*out["cuda"][1:]), names.grouped(*out["cpu"][1:])
    bad = sorted(
        ((float((A[k] - B[k]).norm() / B[k].norm().clamp(min=1e-30)), k) for k in A), reverse=True
    )[:6]
    say(bad)


def infer():
    c = DDiTConfig()
    lay = layout(c)
    flat = lay.initial([0])[0]
    flat += 0.03 * torch.randn(flat.shape, generator=torch.Generator().manual_seed(0))
    ref = NetworkDenoiser(c, flat, device="cuda", precision="float32", rows=64)
    tok = torch.randint(0, 500, (64, 24), device="cuda")
    tok[torch.rand(64, 24, device="cuda") < 0.5] = 500
    r = ref(tok)
    for rows in (1024, 4096):
        t = time.time()
        d = NetworkDenoiser(c, flat, device="cuda", rows=rows)
        o = d(tok)
        torch.cuda.synchronize()
        say(rows, "ready in", time.time() - t, "max err", float((o - r).abs().max()))
        m = torch.full((5, 24), 500, device="cuda")
        e = d(m)
        h = -(e.exp() * e).sum(1)
        say("tie spread", float(h.max() - h.min()))
        g = d._graphs[24][0]
        ms = timed(g.replay)
        say("rows", rows, "ms", ms, "-> 24 rounds of 16384:", ms * 16384 / rows * 24 / 1e3, "s")
        if rows == 1024:
            profile(g.replay, top=14)
        big = torch.full((16384, 24), 500, device="cuda")
        big[:, ::2] = 1
        say("call 16384 half masked ms", timed(lambda: d(big), 5, 1))


for name in sys.argv[1:]:
    section(globals()[name])
