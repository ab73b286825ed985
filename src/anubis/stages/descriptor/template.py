"""A descriptor to start from: commented, valid, and it runs as it is on the process engine."""

from __future__ import annotations

import re
from typing import Final

_TEMPLATE: Final = """\
# A benchmark, described. `anubis validate` checks it, `anubis run` runs it.
# Lines that start with "#:" are settings you may want; remove the mark to use them.

spec_version = "0.1.0"

[info]
description = "What this benchmark measures, in a sentence."
#: scheduling = "0 3 * * *"      # again and again, by cron; without it: once, now
#: execution_engine = "process"  # default, process, docker, kubernetes or aws.sagemaker
#: priority = 10                 # -100 to 100; higher ones leave the queue first

[info.labels]
task_name = "@NAME@"  # names the benchmark: runs with the same name form one trend line

#: [schedule]
#: time_zone = "Europe/Berlin"  # of the hours in scheduling; UTC unless given
#: overlap = "skip"             # while a run has not ended; also: queue, cancel_previous
#: catch_up = "last"            # what nobody was there to fire; also: none, all

[hardware]
strategy = "single_node"
#: cpus = 4              # what must be free before the run starts; also: gpus = 1
#: memory = "8GiB"
#: exclusive = true      # nothing else of ours may run meanwhile
#: cpu_affinity = "0-3"  # the CPUs the program may use
#: niceness = 5          # -20 (first) to 19 (last)
#: instance_type = "m7i.4xlarge"  # which machine of a cluster

[env.vars]
# Environment variables of the program.
STEPS = "5"

[ml]
# The command, without a shell. $(NAME) stands for an environment variable; $(ANUBIS_PYTHON) is
# the Python that Anubis itself runs on. Relative paths start at this file's folder.
benchmark_code = '''
$(ANUBIS_PYTHON) -c "
import os, time
for step in range(1, int(os.environ['STEPS']) + 1):
    started = time.perf_counter()
    total = sum(i * i for i in range(200_000))
    print(f'step={step} seconds={time.perf_counter() - started:.6f}', flush=True)
"
'''
#: args = "--batch-size=32"  # added to the command

# What to collect: every match of a pattern (RE2) in a line of output is one sample.
# The group holds the number.
[[output.metrics]]
name = "step"
units = "steps"
pattern = 'step=(\\d+)'

[[output.metrics]]
name = "seconds"
units = "s"
pattern = 'seconds=(\\S+)'

#: [kubernetes]                # what other engines than kubernetes ignore
#: node_selector = { "example.org/pool" = "bench" }
#: tolerations = [{ key = "example.org/bench", operator = "Exists" }]

[limits]
running = "10m"  # the run is stopped after this; also: queued, starting, finishing, grace
#: output_size = "1GB"
#: concurrency = 1  # runs of this benchmark at once
"""

_NOT_IN_LABELS: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def template(name: str) -> str:
    """A descriptor for a benchmark of this name; what labels cannot hold becomes a dash."""
    return _TEMPLATE.replace("@NAME@", _label(name))


def _label(name: str) -> str:
    """The name as a label: 63 characters, a letter or digit at both ends."""
    return _NOT_IN_LABELS.sub("-", name)[:63].strip("-_.") or "my-benchmark"
