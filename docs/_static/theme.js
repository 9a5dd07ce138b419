// The theme that the visitor chose in this browser, before the page is drawn.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
