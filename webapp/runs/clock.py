"""Clock steps of runs: end lapsed attempts, and resend hints to workers."""

from webapp.core import clock
from webapp.runs import attempts, local_files, services
from webapp.runs.alerts import services as alerts

clock.register("runs: lapsed attempts")(attempts.lapse_overdue)
clock.register("runs: hints", every=attempts.HINT_SECONDS)(attempts.repeat_hints)
clock.register("runs: serve hints", every=attempts.SERVE_HINT_SECONDS)(attempts.repeat_serve_hints)
clock.register("runs: base models", every=20.0)(services.register_bases)
clock.register("runs: stale runs", every=30.0)(alerts.note_stale)
clock.register("runs: leftovers", every=30.0)(local_files.delete_leftovers)
clock.register("runs: alerts", every=alerts.HINT_SECONDS)(alerts.repeat_hints)
