import torch
from maskwalk.denoisers.pretrained import load_pretrained
from maskwalk.training.zoo import RECIPES
from maskwalk.decoding import decode; from maskwalk.draws import Streams, inverse_cdf; from maskwalk.samplers import SAMPLERS
from maskwalk.scores import score
p=load_pretrained("st_er_p0"); law=RECIPES["st_er_p0"].law()
c,g,g32=p.denoiser(rows=8),p.denoiser(device="cuda"),p.denoiser(device="cuda",precision="float32",rows=64)
w=law.sample(8,seed=5); tok=w.clone(); tok[:,1::2]=500
a,b,b32=c(tok),g(tok.cuda()).cpu(),g32(tok.cuda()).cpu()
print("err fp16",(a-b).abs().max(),"fp32",(a-b32).abs().max(),"prob err",(a.exp()-b.exp()).abs().max(), b.isnan().any())
u=torch.rand(len(a),dtype=torch.float64)
print("draws equal",(inverse_cdf(a,u)==inverse_cdf(a.cuda(),u.cuda()).cpu()).double().mean(),"entropy",(score("entropy",a,1e-4)-score("entropy",a.cuda(),1e-4).cpu()).abs().max())
i=torch.arange(64); S0,S1=Streams(0,i),Streams(0,i.cuda())
from maskwalk.draws import Purpose
print("uniform",(S0.uniform(Purpose.TIE,3,24)-S1.uniform(Purpose.TIE,3,24).cpu()).abs().max())
for d,n in ((g,"fp16"),(g32,"fp32")):
    x=decode(SAMPLERS.build("entropy(block=1)"),d,torch.full((64,24),500).cuda(),streams=Streams(0,i.cuda())).tokens.cpu()
    print(n,float(law.valid(x).all(1).double().mean()),float(law.valid(x).double().mean()),x[0,:10])
