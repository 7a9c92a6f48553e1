import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { AT, scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import { createReward, deleteReward, reward, updateReward } from './reward.js';
import type { RewardEvent } from './reward.events.js';

const attributes = {
  name: 'Free coffee',
  description: null,
  stampsRequired: 5,
  position: 1,
  active: true,
};
const created: RewardEvent = {
  type: 'RewardCreated',
  data: { id: 1, accountId: 1, cardId: 2, ...attributes },
};
const deleted: RewardEvent = { type: 'RewardDeleted', data: {} };

const LATER = '2026-03-02T10:00:00.000Z';

describe('reward', () => {
  it('is found in existing histories, with the times of its events', () => {
    expect(reward.name).toBe('reward');
    const updated: RewardEvent = { type: 'RewardUpdated', data: { name: 'Tea' } };
    expect(scenario(reward, created, { ...updated, at: LATER }).state()).toMatchObject({
      deletedAt: null,
      createdAt: AT,
      updatedAt: LATER,
    });
    expect(scenario(reward, created, { ...deleted, at: LATER }).state()).toMatchObject({
      deletedAt: LATER,
      createdAt: AT,
      updatedAt: LATER,
    });
  });

  it('is created with everything it needs', () => {
    scenario(reward)
      .when(() => createReward(1, 1, 2, attributes))
      .then(created);
  });

  it('records only what changes', () => {
    scenario(reward, created)
      .when((state) => updateReward(state, { name: 'Free coffee', active: false }))
      .then({ type: 'RewardUpdated', data: { active: false } });
    scenario(reward, created)
      .when((state) => updateReward(state, { name: 'Free coffee' }))
      .then();
  });

  it('can be deleted until somebody redeems it', () => {
    scenario(reward, created)
      .when((state) => deleteReward(state, false))
      .then(deleted);
    scenario(reward, created)
      .when((state) => deleteReward(state, true))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
  });

  it('is gone once deleted', () => {
    scenario(reward, created, deleted)
      .when((state) => updateReward(state, { name: 'Tea' }))
      .thenThrows(NotFoundError);
    scenario(reward, created, deleted)
      .when((state) => deleteReward(state, false))
      .thenThrows(NotFoundError);
  });
});
