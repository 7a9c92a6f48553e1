/**
 * ISO 8601 with the offset that the time zone has then, so that the day that is shown is the one that was meant.
 * @param time ISO 8601
 * @param timeZone IANA name
 */
export function zonedTime(time: string, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  }).formatToParts(new Date(time));
  const of = (wanted: string) => parts.find(({ type }) => type === wanted)?.value ?? '';
  const offset = /[+-]\d\d:\d\d/.exec(of('timeZoneName'))?.[0] ?? '+00:00';
  const day = `${of('year').padStart(4, '0')}-${of('month')}-${of('day')}`;
  return `${day}T${of('hour')}:${of('minute')}:${of('second')}${offset}`;
}
