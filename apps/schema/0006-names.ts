import type { MigrationInterface, QueryRunner } from 'typeorm';
import { LOCKS } from '#platform/database/locks.js';

const RENAME = `
alter table es.checkpoints rename to positions;
alter index es.checkpoints_pkey rename to positions_pkey;

alter table api_retirement_notices rename to api_retirement_announcements;
alter index api_retirement_notices_mail rename to api_retirement_announcements_mail;

alter table erasure_notices rename to erasure_announcements;
alter index erasure_notices_pkey rename to erasure_announcements_pkey;
alter table erasure_watchers rename applied_notice_id to applied_id;
-- Announcements become visible in the order of their ids: whoever has seen one has seen all before it.
create or replace function announce_erasure(p_subjects bigint[]) returns bigint
language plpgsql as $$
declare
  announcement_id bigint;
begin
  perform pg_advisory_xact_lock(${LOCKS.erasureAnnouncements});
  delete from erasure_announcements where announced_at < now() - interval '10 minutes';
  delete from erasure_watchers where seen_at < now() - interval '10 minutes';
  insert into erasure_announcements (subject_ids) values (p_subjects) returning id into announcement_id;
  perform pg_notify('inkpad_erasures', '');
  return announcement_id;
end $$;

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
