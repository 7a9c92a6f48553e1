import { Controller, Get } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { CurrentUser, type SignedInUser } from './current-user.js';
import { ICON_NAMES } from './icons.js';
import { loadView } from './view.js';
import { type PageResult, showPage } from './page-results.js';

const OWNED = {
  name: 'elements_owned_stores',
  text: `select from memberships where user_id = $1 and role = 'owner' limit 1`,
};
const view = loadView<{ icons: readonly string[] }>(import.meta.url, './views/elements.eta');

/** Shows owners every element that pages are made of, for developers. It has no data, and its forms do nothing. */
@Controller('app/elements')
export class ElementsController {
  constructor(private readonly pool: Pool) {}

  /** @throws NotFoundError for users who own no store */
  @Get()
  async show(@CurrentUser() { userId }: SignedInUser): Promise<PageResult> {
    const owned = await query(this.pool, { ...OWNED, values: [userId] });
    if (owned.length === 0) throw new NotFoundError('Page');
    return showPage({ view, title: 'Elements', data: { icons: ICON_NAMES }, lang: 'en' });
  }
}
