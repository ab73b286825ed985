"""What sits beside a benchmark in its pod and keeps all that it tells: the recorder.

::

    python3 -m anubis.adapters.engine.kubernetes.recorder [run]
    python3 -m anubis.adapters.engine.kubernetes.recorder stop GRACE CAUSE
    python3 -m anubis.adapters.engine.kubernetes.recorder release

The first is the recorder; the second has the program stopped, with so many seconds of grace; the
third tells the recorder that its journal was fetched, and that it may go.

It is a native sidecar: started before the program, and told to end after it. It reads the node's
files of what the program wrote (``cri_log``), the pipe of ``emit()`` (``emitting``), and what
the program's processes use (``reading``); it asks a server whether it is ready (``answering``)
and stops the program when it must (``stopping``). All goes into one journal (``recording``), and
``running`` is the loop that does it. Whoever is killed here is started again and goes on where
the journal ends.

Its processor time and memory are taken from the measured program's machine. So only the standard
library is loaded, and of that little; the questions of probes, which need more, only where asked.
"""
