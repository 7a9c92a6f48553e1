import type { MigrationInterface, QueryRunner } from 'typeorm';

const RENAME = `
alter table es.checkpoints rename to positions;
alter index es.checkpoints_pkey rename to positions_pkey;

alter table api_retirement_notices rename to api_retirement_announcements;
alter index api_retirement_notices_mail rename to api_retirement_announcements_mail;

alter table google_notices rename to google_notifications;
alter index google_notices_pkey rename to google_notifications_pkey;
alter table passes rename notice to notification;
alter table passes rename notice_tag to notification_tag;

-- They hold logos and icons too.
alter table strip_designs rename to card_image_designs;
alter index strip_designs_pkey rename to card_image_designs_pkey;
alter table strip_images rename to card_images;
alter index strip_images_pkey rename to card_images_pkey;
`;

/** Names tables and columns after what they hold, as the code does. */
export class Names implements MigrationInterface {
  readonly name = 'Names0000000000006';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(RENAME);
  }

  async down(): Promise<void> {
    throw new Error('this migration cannot be reverted: restore a backup instead');
  }
}
