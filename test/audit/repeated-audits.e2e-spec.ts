import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { InviteUser, WithdrawInvitation } from '#identity/invitation.commands.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { SignIns } from '#identity/sign-ins.service.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client;
let userId: number;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  const { rows } = await service.database.query<{ user_id: number }>(
    'select user_id from memberships where account_id = $1',
    [store.accountId],
  );
  userId = Number(rows[0]?.user_id);
});
afterAll(() => service.stop());

async function listTimes(type: string): Promise<(string | null)[]> {
  const { rows } = await service.database.query<{ times: string | null }>(
    `select subject ->> 'times' as times from audit_log where account_id = $1 and type = $2 order by id`,
    [store.accountId, type],
  );
  return rows.map(({ times }) => times);
}

describe('the audit log', () => {
  it('records only the 1st and the 10th of ten begun enrolments of a second factor', async () => {
    const factors = service.app.get(SecondFactors, { strict: false });
    for (let i = 0; i < 10; i++) await factors.beginEnrolment(cli, userId);
    expect(await listTimes('user.second_factor_started')).toEqual(['1', '10']);
  });

  it('records nothing when there are no sessions to end', async () => {
    const signIns = service.app.get(SignIns, { strict: false });
    expect(await signIns.signOutElsewhere(cli, { userId, sessionId: 0 })).toBe(0);
    expect(await listTimes('user.sessions_ended')).toEqual([]);
  });

  it('records one entry for an invitation withdrawn twice', async () => {
    const { accountId } = store;
    const { invitationId } = await service.execute(
      new InviteUser(cli, userId, accountId, 'new@shop.example', 'staff', null),
    );
    const withdraw = new WithdrawInvitation(cli, accountId, invitationId);
    await service.execute(withdraw);
    expect(await service.execute(withdraw)).toEqual({ invitationId });
    expect(await listTimes('invitation.withdrawn')).toEqual([null]);
  });
});
