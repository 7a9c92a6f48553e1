const button = document.getElementById('here');
const problem = document.getElementById('here-problem');
if ('geolocation' in navigator) {
  button.hidden = false;
  button.addEventListener('click', () => {
    problem.hidden = true;
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => {
        document.getElementById('field-latitude').value = coords.latitude.toFixed(6);
        document.getElementById('field-longitude').value = coords.longitude.toFixed(6);
      },
      () => {
        problem.hidden = false;
      },
      { enableHighAccuracy: true, timeout: 15000 },
    );
  });
}
