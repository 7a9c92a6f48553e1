// Chooses the time zone of this device and the country that it lies in, if the lists have them.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function choose(name, isOwn) {
  const list = document.getElementById('field-' + name);
  const own = [...list.options].find(({ value }) => value !== '' && isOwn(value));
  if (own) list.value = own.value;
  return own !== undefined;
}

function hasZone(country) {
  const region = new Intl.Locale('und', { region: country });
  return (region.getTimeZones?.() ?? region.timeZones ?? []).includes(zone);
}

// Browsers call some time zones by an alias.
const resolve = (timeZone) => Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
if (!choose('time_zone', (value) => value === zone))
  choose('time_zone', (value) => resolve(value) === resolve(zone));
// A browser in Berlin may speak American English: its language names the country only where the time zone does not.
if (!choose('country', hasZone)) {
  const { region } = new Intl.Locale(navigator.language);
  choose('country', (value) => value === region);
}
