"""Labels for tests."""

from training.records import Label


def labels(seat, values, reasons=()):
    """Labels of a seat for values by label type."""
    why = dict(reasons)
    return tuple(Label(label=name, value=value, seat=seat, reason=why.get(name, "")) for name, value in values.items())


def sent(values):
    """Labels about the target's seat as the API takes them."""
    return [{"label": name, "value": value} for name, value in values.items()]


def reasons(judgment):
    """The reasons of a judgment's labels, record or row, by label type."""
    records = judgment.records() if hasattr(judgment, "records") else judgment.labels
    return {label.label: label.reason for label in records or () if label.reason}
