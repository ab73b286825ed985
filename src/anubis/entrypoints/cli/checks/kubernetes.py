"""Whether runs on the Kubernetes engine are possible here."""

from __future__ import annotations

from anubis.bootstrap import clusters, engines
from anubis.domain.errors import EngineUnavailable, UserError
from anubis.entrypoints.cli.checks.finding import Finding, doubtful, good
from anubis.settings.model import Settings


async def answers(settings: Settings) -> Finding:
    """Who answers, and whether we may do there what we must. Without a cluster, all else works."""
    if reason := engines.absence(settings, "kubernetes"):
        if settings.kubeconfig and not engines.knows_a_cluster(settings):
            return doubtful("kubernetes", reason, "name another, or unset KUBECONFIG")
        return good("kubernetes", f"not used. {reason}")
    try:
        report = await clusters.examined(settings)
    except UserError as error:
        return doubtful("kubernetes", str(error), "mend it, or unset ANUBIS_KUBERNETES_POD")
    except EngineUnavailable as error:
        if settings.cluster.is_dir() or settings.kubeconfig:  # it was used here, or named
            return doubtful("kubernetes", str(error), "runs on the kubernetes engine wait for it")
        return good("kubernetes", f"not used. {error}")
    if report.missing:
        rights = ", ".join(report.missing)
        advice = "the Role in deploy/chart has all rights that are needed"
        return doubtful("kubernetes", f"{report.words}; we may not {rights}", advice)
    if report.refusal:
        advice = f"{report.advice}, or name another: ANUBIS_KUBERNETES_NAMESPACE"
        return doubtful("kubernetes", f"{report.words}; it refuses us: {report.refusal}", advice)
    return good("kubernetes", report.words)
