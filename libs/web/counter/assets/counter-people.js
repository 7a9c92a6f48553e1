/** The longest PIN, in the digits of any script. A shorter one is sent by its user. */
const WHOLE_PIN = /^\p{Nd}{6}$/u;

const form = document.getElementById('people');
const pin = form?.elements.pin;

// A tap on a name opens the keyboard for the PIN, also on the name that is chosen already; arrow keys only choose.
form?.addEventListener('click', (event) => {
  const label = event.target.closest('.names label');
  if (!label) return;
  event.preventDefault();
  label.control.checked = true;
  pin.focus();
});
pin?.addEventListener('input', () => {
  if (WHOLE_PIN.test(pin.value) && form.reportValidity()) form.requestSubmit();
});
