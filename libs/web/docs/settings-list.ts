import { descriptions } from '#platform/kernel/setting-decorators.js';
import { loadTemplate } from '#platform/kernel/templates.js';
import { Settings, SETTINGS } from '#configuration/settings.js';
import { renderDescription } from './sample-html.js';

/** Settings that one description is about. */
export type SettingGroup = { description: string; settings: { name: string; value: string }[] };

const view = loadTemplate<{
  groups: SettingGroup[];
  renderDescription: typeof renderDescription;
}>(import.meta.url, './views/settings.eta');

/** Lists every setting with its default. */
export function listSettings(): SettingGroup[] {
  const defaults: Partial<Record<string, unknown>> = { ...new Settings() };
  const groups: SettingGroup[] = [];
  for (const name of SETTINGS.filter((one) => one !== 'NODE_ENV')) {
    const description = descriptions.get(name);
    const setting = { name, value: renderDefault(defaults[name]) };
    if (description !== undefined) groups.push({ description, settings: [setting] });
    else groups.at(-1)?.settings.push(setting);
  }
  return groups;
}

/** Renders every setting, each with an anchor of its name. */
export function renderSettings(): string {
  return view({ groups: listSettings(), renderDescription });
}

function renderDefault(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return String(value ?? '');
  const parts = Object.entries(value).filter(([, part]) => part !== null);
  return parts.map(([name, part]) => `${name}=${String(part)}`).join(',');
}
