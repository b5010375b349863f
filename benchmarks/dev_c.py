import os, sys, time, multiprocessing as mp
import torch
import triton
from maskwalk.denoisers import fused as G, short_attention as S
from maskwalk.denoisers.attention import rotation
M, R, D = 7, 6144, 256
def inputs():
    torch.manual_seed(0); dev="cuda"
    f=lambda *s: torch.randn(*s,device=dev)
    return dict(new=f(M,R,D),y=f(M,R,D).bfloat16(),bias=f(M,D).bfloat16(),gate=f(M,D),factor=f(M,D),keys=torch.randint(-2**31,2**31,(M,8),device=dev).int(),
        th=torch.full((M,),int(.1*2**32-2**31),device=dev).int(),sc=torch.full((M,),1/.9,device=dev),dn=f(M,R,D),do=f(M,R,D).bfloat16(),dx=f(M,R,D),dy=f(M,R,D).bfloat16())
def jg(block,warps,stages,parts):
    i=inputs(); sums=torch.empty(M,parts,4,D,device="cuda")
    def go(): G._join_gradient[(parts,M)](i["new"],i["y"],i["bias"],i["gate"],i["factor"],i["keys"],i["th"],i["sc"],i["dn"],i["do"],i["dx"],i["dy"],sums,R,0,D,D,D,BRANCH=3,BRANCHES=8,HAS_BRANCH=True,HAS_MORE=True,HAS_BIAS=True,DROP=True,HIDDEN=D,BLOCK=block,PARTS=parts,STAGES=stages,num_warps=warps)
    return go
def jf(block,warps):
    i=inputs()
    def go(): G._join[(triton.cdiv(R,block),M)](i["new"],i["y"],i["bias"],i["gate"],i["factor"],i["gate"],i["keys"],i["th"],i["sc"],i["dx"],i["dy"],R,0,D,D,D,D,BRANCH=3,BRANCHES=8,HAS_BRANCH=True,HAS_BIAS=True,DROP=True,HIDDEN=D,BLOCK=block,num_warps=warps)
    return go
def gg(block,warps,stages,parts):
    z,b,d=torch.randn(M,R,1024,device="cuda").bfloat16(),torch.randn(M,1024,device="cuda").bfloat16(),torch.randn(M,R,1024,device="cuda").bfloat16(); o=torch.empty_like(z); sums=torch.empty(M,parts,1024,device="cuda")
    def go(): G._gelu_gradient[(parts,M)](z,b,d,o,sums,R,1024,WIDTH=1024,BLOCK=block,PARTS=parts,STAGES=stages,num_warps=warps)
    return go
def gf(block,warps):
    z,b=torch.randn(M,R,1024,device="cuda").bfloat16(),torch.randn(M,1024,device="cuda").bfloat16(); o=torch.empty_like(z)
    def go(): G._gelu[(triton.cdiv(R,block),M)](z,b,o,R,1024,WIDTH=1024,BLOCK=block,num_warps=warps)
    return go
V=[("jg",4,4,1,128),("jg",4,4,1,75),("jg",4,4,2,75),("jg",4,4,3,75),("jg",4,8,2,56),("jg",4,8,2,112),("jg",2,2,2,150),("jg",8,8,2,37),("jg",4,4,2,300),
   ("jf",4,4),("jf",1,1),("jf",2,1),("jf",4,2),("jf",8,4),("jf",8,8),
   ("gg",1,4,1,128),("gg",1,4,1,256),("gg",1,4,2,256),("gg",2,4,2,128),("gg",1,4,1,1024),("gf",1,4),("gf",2,4),("gf",1,2)]
def work(v,lock,q):
    try:
        go=globals()[v[0]](*v[1:]); go(); torch.cuda.synchronize()
        with lock:
            for _ in range(3): go()
            a,b=torch.cuda.Event(enable_timing=True),torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize(); a.record()
            for _ in range(60): go()
            b.record(); torch.cuda.synchronize(); q.put((v,a.elapsed_time(b)/60*1e3))
    except Exception as e: q.put((v,repr(e)[:200]))
if __name__=="__main__":
    c=mp.get_context("fork"); lock,q=c.Lock(),c.Queue()
    ps=[c.Process(target=work,args=(v,lock,q)) for v in V]
    for p in ps: p.start()
    got={}
    end=time.time()+float(sys.argv[1])
    while len(got)<len(V) and time.time()<end:
        try: v,t=q.get(timeout=1); got[v]=t
        except Exception: pass
    for v in V: print(*v, got.get(v))
    for p in ps: p.kill()
