"""The account pages of our own."""

from django.urls import path

from webapp.accounts import views

app_name = "accounts"
urlpatterns = [
    path("", views.account, name="account"),
    path("email/", views.confirm_email, name="confirm-email"),
    path("keys/<int:key_id>/revoke/", views.revoke, name="revoke-key"),
    path("people/", views.people, name="people"),
    path("people/<int:user_id>/", views.change_person, name="change-person"),
    path("people/<int:user_id>/password/", views.new_password, name="new-password"),
]
