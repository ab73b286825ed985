"""Run units as processes of this machine, each under a small guardian that outlives the service.

``engine`` is what the rest of Anubis calls. ``guardian`` is the part that lives in processes of
its own (the zygote and one shim per run); it imports the standard library only and is loaded by a
bare interpreter, so importing this package must stay free: it holds no code.
"""
