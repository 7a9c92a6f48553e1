import { Command } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { findChanges } from '#platform/kernel/changes.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { defineHandler } from '#platform/event-store/commands/record-commands.js';
import { toMessageSettingsJson, type MessageSettingsJson } from './message-settings.dto.js';
import { changeSettings, type MessageSettingsChanges } from './message-settings.js';
import { MessageSettingsService } from './message-settings.service.js';

export class UpdateMessageSettings extends Command<MessageSettingsJson> {
  constructor(
    readonly context: CommandContext,
    readonly changes: MessageSettingsChanges,
  ) {
    super();
  }
}

export const updateMessageSettingsHandler = defineHandler(
  UpdateMessageSettings,
  [AuditedWrites, MessageSettingsService],
  ({ context, changes }, _, writes, settings) =>
    writes.write(context, async (transaction) => {
      const { accountId } = context;
      const { manager } = transaction;
      const current = await settings.lock(manager, accountId);
      const changed = changeSettings(current, changes);
      const before = { ...toMessageSettingsJson(current) };
      const after = { ...toMessageSettingsJson(changed) };
      const differences = findChanges(before, after);
      if (Object.keys(differences).length === 0) return after;
      await settings.save(manager, accountId, changed);
      if ('quiet_from' in differences || 'quiet_to' in differences)
        await settings.release(manager, accountId);
      await transaction.audit({
        accountIds: [accountId],
        type: 'message_settings.updated',
        subject: { changes: differences },
      });
      return after;
    }),
);
