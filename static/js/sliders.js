// The value of a slider stands beside it; what is entered anew is no longer marked as wrong.
(() => {
  "use strict";
  document.addEventListener("input", (event) => {
    event.target.removeAttribute("aria-invalid");
    const value = document.querySelector(`output[for="${event.target.id}"]`);
    if (value && event.target.type === "range") value.textContent = event.target.value;
  });
})();
