"""Addresses of the accounts app: sign-in, a person's account, and the administration of people."""

from django.urls import include, path

from webapp.accounts import views

pages = [
    path("", views.account, name="account"),
    path("email/", views.confirm_email, name="confirm-email"),
    path("keys/<int:key_id>/revoke/", views.revoke, name="revoke-key"),
    path("people/", views.people, name="people"),
    path("people/<int:user_id>/", views.change_person, name="change-person"),
    path("people/<int:user_id>/password/", views.new_password, name="new-password"),
]
urlpatterns = [
    path("", include("webapp.accounts.account_urls")),
    path("", include((pages, "accounts"))),
]
