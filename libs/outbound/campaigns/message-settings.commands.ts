import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { findChanges } from '#platform/kernel/changes.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
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

@CommandHandler(UpdateMessageSettings)
export class UpdateMessageSettingsHandler implements ICommandHandler<UpdateMessageSettings> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly settings: MessageSettingsService,
  ) {}

  /** @throws InvalidFieldsError */
  execute({ context, changes }: UpdateMessageSettings): Promise<MessageSettingsJson> {
    const { accountId } = context;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.settings.lock(manager, accountId);
      const changed = changeSettings(current, changes);
      const before = { ...toMessageSettingsJson(current) };
      const after = { ...toMessageSettingsJson(changed) };
      const differences = findChanges(before, after);
      if (Object.keys(differences).length === 0) return after;
      await this.settings.save(manager, accountId, changed);
      await transaction.audit({
        accountIds: [accountId],
        type: 'message_settings.updated',
        subject: { changes: differences },
      });
      return after;
    });
  }
}
