import { Controller, Get } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { loadPart } from '#platform/kernel/templates.js';
import { query } from '#platform/database/connection.js';
import { CurrentUser, type SignedInUser } from './current-user.js';
import { ELEMENTS_STYLE } from './elements-style.js';
import { ICON_NAMES } from './icons.js';
import { loadView } from './view.js';
import { type PageResult, showPage } from './page-results.js';

const OWNED = {
  name: 'elements_owned_stores',
  text: `select from memberships where user_id = $1 and role = 'owner' limit 1`,
};
loadPart('element-samples', import.meta.url, './views/element-samples.eta');
type ElementsView = { icons: readonly string[]; toTwin: (samples: string) => string };
const view = loadView<ElementsView>(import.meta.url, './views/elements.eta');

/** Shows owners every element that pages are made of in both colour schemes, for developers. It has no data, and its forms do nothing. */
@Controller('app/elements')
export class ElementsController {
  constructor(private readonly pool: Pool) {}

  /** @throws NotFoundError for users who own no store */
  @Get()
  async show(@CurrentUser() { userId }: SignedInUser): Promise<PageResult> {
    const owned = await query(this.pool, { ...OWNED, values: [userId] });
    if (owned.length === 0) throw new NotFoundError('Page');
    return showPage({
      view,
      title: 'Elements',
      styles: [ELEMENTS_STYLE],
      data: { icons: ICON_NAMES, toTwin },
      lang: 'en',
    });
  }
}

/** Leaves out of a copy what may be in a page only once. */
function toTwin(samples: string): string {
  return samples.replaceAll(/ (?:id|for|name|data-text|aria-[a-z]+by)="[^"]*"/g, '');
}
