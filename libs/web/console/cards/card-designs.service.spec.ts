import { expect, it } from '@jest/globals';
import type { Pool } from 'pg';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import type { PastStates } from '#platform/event-store/log/past-states.service.js';
import type { UploadedPictures } from '#loyalty/cards/uploaded-pictures.service.js';
import type { RewardsService } from '#loyalty/rewards/rewards.service.js';
import type { FormCommands } from '#web/pages/form-commands.service.js';
import { CardDesigns } from './card-designs.service.js';

it('changes nothing of a card whose former picture is gone', async () => {
  const commands: unknown[] = [];
  const renewed: unknown[] = [];
  const rows = { design_card: [{ card: {}, rewards: [] }], design_store: [{ timeZone: 'UTC' }] };
  const designs = new CardDesigns(
    {
      query: ({ name }: { name: string }) =>
        Promise.resolve({ rows: rows[name as keyof typeof rows] ?? [] }),
    } as unknown as Pool,
    { execute: (command: unknown) => commands.push(command) } as unknown as FormCommands,
    {
      renew: (...picture: unknown[]) => {
        renewed.push(picture);
        return Promise.resolve(false);
      },
    } as unknown as UploadedPictures,
    {} as RewardsService,
    {
      toMoment: () => Promise.resolve({}),
      projectOne: () => Promise.resolve({ stripType: 'image', stripPicture: 'a1' }),
      projectAll: () => Promise.resolve([]),
    } as unknown as PastStates,
  );
  const moment = { time: new Date(0), openedUpdatedAt: undefined };
  const restoring = designs.restore({ accountId: 7 } as CommandContext, 1, moment);
  await expect(restoring).rejects.toThrow(InvalidFieldsError);
  expect([renewed, commands]).toEqual([[[7, 'a1']], []]);
});
