const form = document.getElementById('pin-form');
const button = document.getElementById('here');
const problem = document.getElementById('here-problem');
if ('geolocation' in navigator) {
  document.getElementById('here-block').hidden = false;
  button.addEventListener('click', () => {
    const label = button.textContent;
    problem.hidden = true;
    button.disabled = true;
    button.textContent = form.dataset.locating;
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => {
        document.getElementById('field-link').value = '';
        document.getElementById('field-latitude').value = coords.latitude.toFixed(6);
        document.getElementById('field-longitude').value = coords.longitude.toFixed(6);
        form.submit();
      },
      () => {
        button.disabled = false;
        button.textContent = label;
        problem.hidden = false;
      },
      { enableHighAccuracy: true, timeout: 15000 },
    );
  });
}
