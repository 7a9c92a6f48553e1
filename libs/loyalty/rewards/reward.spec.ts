import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { createReward, deleteReward, reward, updateReward } from './reward.js';
import type { RewardEvent } from './reward.events.js';

const attributes = {
  name: 'Free coffee',
  description: null,
  stampsRequired: 5,
  position: 1,
  active: true,
};
const rewardCreated: RewardEvent = {
  type: 'RewardCreated',
  data: { id: 1, accountId: 1, cardId: 2, ...attributes },
};
const rewardDeleted: RewardEvent = { type: 'RewardDeleted', data: {} };

const LATER = '2026-03-02T10:00:00.000Z';

describe('a reward', () => {
  it('has the name of existing streams, and the times of its events', () => {
    expect(reward.name).toBe('reward');
    const rewardUpdated: RewardEvent = { type: 'RewardUpdated', data: { name: 'Tea' } };
    expect(scenario(reward, rewardCreated, { ...rewardUpdated, at: LATER }).state()).toMatchObject({
      deletedAt: null,
      createdAt: AT,
      updatedAt: LATER,
    });
    expect(scenario(reward, rewardCreated, { ...rewardDeleted, at: LATER }).state()).toMatchObject({
      deletedAt: LATER,
      createdAt: AT,
      updatedAt: LATER,
    });
  });

  it('is created with every attribute', () => {
    scenario(reward)
      .when(() => createReward(1, 1, { cardId: 2, ...attributes }))
      .then(rewardCreated);
  });

  it('records only what changes', () => {
    scenario(reward, rewardCreated)
      .when((state) => updateReward(state, { name: 'Free coffee', active: false }))
      .then({ type: 'RewardUpdated', data: { active: false } });
    scenario(reward, rewardCreated)
      .when((state) => updateReward(state, { name: 'Free coffee' }))
      .then();
  });

  it('can be deleted until it was redeemed', () => {
    scenario(reward, rewardCreated)
      .when((state) => deleteReward(state, false))
      .then(rewardDeleted);
    scenario(reward, rewardCreated)
      .when((state) => deleteReward(state, true))
      .thenRejected({ fields: ['base'], code: 'validation_failed' });
  });

  it('is not found once deleted', () => {
    scenario(reward, rewardCreated, rewardDeleted)
      .when((state) => updateReward(state, { name: 'Tea' }))
      .thenThrows(NotFoundError);
    scenario(reward, rewardCreated, rewardDeleted)
      .when((state) => deleteReward(state, false))
      .thenThrows(NotFoundError);
  });
});
