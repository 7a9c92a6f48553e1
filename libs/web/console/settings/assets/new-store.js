// Chooses the time zone of this device, if the list has it.
const zones = document.getElementById('field-time_zone');
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if ([...zones.options].some(({ value }) => value === own)) zones.value = own;
